"""What scripts/calibration finds of torch's matrix products and attention."""
import importlib.util
import types
import unittest

from calibration_support import design, rounds

import attention
import estimates
import products


def of_rounds(**parts):
    """Rounds with these parts, the second time a tenth slower."""
    whole = rounds(2)
    for name, part in parts.items():
        for factor, measured in zip((1.0, 1.1), whole):
            measured[name] = {key: seconds * factor for key, seconds in part.items()}
    return whole


def profile(whole):
    return estimates.profile(estimates.Estimate(whole, design(), resamples=5), {}, {})


class Products(unittest.TestCase):
    RATE = 40e9
    LARGE = {("fp32", 1): products.flop(products.SHAPE) / RATE}

    def small(self, latency):
        return {("fp32", 1): latency + products.flop(products.SMALL_SHAPE) / self.RATE}

    def test_they_have_the_best_rate_and_latency_of_all_rounds(self):
        found = profile(of_rounds(products=self.LARGE, small_products=self.small(9e-6)))

        self.assertEqual(found["products"], {"fp32": dict(threads=1, gflop_per_s=40, latency_us=9)})

    def test_a_latency_is_not_negative_and_left_out_where_it_was_not_measured(self):
        negative = products.entries(of_rounds(products=self.LARGE, small_products=self.small(-1e-6)))
        without = products.entries(of_rounds(products=self.LARGE))

        self.assertEqual(negative["fp32"]["latency_us"], 0)
        self.assertEqual(without["fp32"], dict(threads=1, gflop_per_s=40))
        self.assertNotIn("products", profile(rounds(2)))

    def test_a_type_that_torch_does_not_multiply_is_left_out(self):
        def mm(a, b):
            if "bfloat16" in a:
                raise RuntimeError("not implemented")
            self.assertEqual((a, b), ((16, 32, "float32"), (32, 64, "float32")))

        torch = types.SimpleNamespace(get_num_threads=lambda: 2, ones=lambda *sides, dtype: (*sides, dtype), mm=mm,
                                      float32="float32", bfloat16="bfloat16")

        self.assertEqual(set(products.ProductTimer(torch, (16, 32, 64), 3).round()), {("fp32", 2)})


def attention_seconds(row, rate):
    return {shape: {direction: row * attention.rows(shape) + attention.flop(shape, direction) / rate
                    for direction in attention.DIRECTIONS} for shape in attention.SHAPES}


class Attention(unittest.TestCase):
    SMALLER, LARGER = attention.SHAPES

    def test_its_arithmetic_is_half_a_square_and_five_products_backward(self):
        shape = attention.Shape(2, 3, 4, 5)

        self.assertEqual([attention.flop(shape, direction) for direction in attention.DIRECTIONS], [960, 2400])
        self.assertEqual(attention.rows(shape), 24)

    def test_rows_and_rates_come_back_out_of_the_least_times(self):
        planted = {"forward": (0.1e-6, 260e9), "backward": (2.7e-6, 900e9)}
        seconds = {("bf16", 1, direction, *shape): attention_seconds(*planted[direction])[shape][direction]
                   for direction in planted for shape in attention.SHAPES}

        found = profile(of_rounds(attention=seconds))["attention"]

        self.assertEqual(found, {"bf16": dict(threads=1, forward=dict(row_us=0.1, gflop_per_s=260),
                                              backward=dict(row_us=2.7, gflop_per_s=900))})
        self.assertNotIn("attention", profile(rounds(2)))

    def test_a_row_takes_no_less_than_nothing(self):
        flop = attention.flop(self.LARGER, "forward")

        found = attention.entry({self.SMALLER: flop / 100e9 / 20, self.LARGER: flop / 100e9}, "forward")

        self.assertEqual(found["row_us"], 0)
        self.assertAlmostEqual(found["gflop_per_s"], 110, delta=11)  # the smaller took a fifth less than it should

    def test_a_rate_that_the_rows_leave_nothing_of_is_a_hundred_times_the_larger_shapes(self):
        larger = 3e-6 * attention.rows(self.LARGER)

        found = attention.entry({self.SMALLER: larger / 2, self.LARGER: larger}, "backward")

        self.assertAlmostEqual(found["row_us"], 3, places=3)
        self.assertAlmostEqual(found["gflop_per_s"], 100 * attention.flop(self.LARGER, "backward") / larger / 1e9,
                               places=2)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs PyTorch")
    def test_both_directions_of_every_shape_are_timed(self):
        import torch

        timer = attention.AttentionTimer(torch)
        found = timer.round()

        self.assertEqual({key for key in found if key[0] == "fp32"},
                         {("fp32", torch.get_num_threads(), direction, *shape)
                          for direction in attention.DIRECTIONS for shape in attention.SHAPES})
        self.assertGreater(min(found.values()), 0)
        self.assertIsNone(timer.operands["fp32", self.SMALLER][0][0].grad)

    def test_a_type_that_torch_has_it_not_in_is_left_out(self):
        def refuse(*_, **__):
            raise RuntimeError("not implemented")

        tensor = types.SimpleNamespace(transpose=lambda *_: tensor, requires_grad_=lambda: tensor)
        functional = types.SimpleNamespace(scaled_dot_product_attention=refuse)
        torch = types.SimpleNamespace(get_num_threads=lambda: 1, rand=lambda *_, dtype: tensor, float32=0, bfloat16=0,
                                      nn=types.SimpleNamespace(functional=functional))

        self.assertEqual(attention.AttentionTimer(torch).round(), {})


if __name__ == "__main__":
    unittest.main()
