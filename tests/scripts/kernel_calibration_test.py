"""What scripts/calibration finds of torch's matrix products and attention."""
import importlib.util
import types
import unittest
import unittest.mock

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
    RATES = {("fp32", 1): 40e9, ("bf16", 1): 800e9}
    LARGE = {key: products.flop(products.SHAPE) / rate for key, rate in RATES.items()}

    def small(self, **latencies):
        return {key: latencies[key[0]] + products.flop(products.SMALL_SHAPE) / rate
                for key, rate in self.RATES.items() if key[0] in latencies}

    def test_they_have_the_best_rate_of_all_rounds_and_what_a_small_one_takes_beyond_fp32s(self):
        found = profile(of_rounds(products=self.LARGE, small_products=self.small(fp32=2e-6, bf16=40e-6)))

        self.assertEqual(found["products"], {"fp32": dict(threads=1, gflop_per_s=40),
                                             "bf16": dict(threads=1, gflop_per_s=800, latency_us=38)})

    def test_a_latency_is_not_negative_and_left_out_where_it_was_not_measured(self):
        def bf16(**latencies):
            return products.entries(of_rounds(products=self.LARGE, small_products=self.small(**latencies)))["bf16"]

        self.assertEqual(bf16(fp32=2e-6, bf16=1e-6)["latency_us"], 0)
        self.assertEqual(bf16(fp32=-1e-6, bf16=9e-6)["latency_us"], 9)  # arithmetic that took less than its rate says
        for latencies in (dict(fp32=2e-6), dict(bf16=40e-6), {}):
            self.assertEqual(bf16(**latencies), dict(threads=1, gflop_per_s=800))
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

    def timed(self, tries):
        """A timer whose first times, one per type and shape, are the shortest, and then `tries` of each."""
        first = [(0.0, 0.0)] * len(products.TYPES) * len(attention.SHAPES)
        torch = types.SimpleNamespace(get_num_threads=lambda: 1, float32=0, bfloat16=0)
        patch = unittest.mock.patch.multiple(attention.AttentionTimer, made=lambda *_: ((), ()), seconds=(
            unittest.mock.Mock(side_effect=first + tries)))
        with patch:
            timer = attention.AttentionTimer(torch)
            return timer.round()

    def test_the_least_of_each_direction_counts_and_no_first_time(self):
        found = self.timed([(2.0, 6.0), (3.0, 4.0), (5.0, 5.0)] * len(products.TYPES) * len(attention.SHAPES))

        self.assertEqual(found, {(name, 1, direction, *shape): seconds for name in products.TYPES
                                 for direction, seconds in (("forward", 2.0), ("backward", 4.0))
                                 for shape in attention.SHAPES})

    def test_a_type_without_attention_in_torch_is_left_out(self):
        def refuse(*_, **__):
            raise RuntimeError("not implemented")

        tensor = types.SimpleNamespace(transpose=lambda *_: tensor, requires_grad_=lambda: tensor)
        functional = types.SimpleNamespace(scaled_dot_product_attention=refuse)
        torch = types.SimpleNamespace(get_num_threads=lambda: 1, rand=lambda *_, dtype: tensor, float32=0, bfloat16=0,
                                      nn=types.SimpleNamespace(functional=functional))

        self.assertEqual(attention.AttentionTimer(torch).round(), {})


if __name__ == "__main__":
    unittest.main()
