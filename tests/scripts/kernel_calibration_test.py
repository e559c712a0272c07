"""What scripts/calibration finds of torch's matrix products, attention and other operations."""
import importlib.util
import types
import unittest
import unittest.mock

from calibration_support import design, rounds

import attention
import estimates
import operations
import products


def of_rounds(**parts):
    """Three rounds with these parts, one twice as fast and one a tenth slower."""
    whole = rounds(3)
    for name, part in parts.items():
        for factor, measured in zip((1.0, 0.5, 1.1), whole):
            measured[name] = {key: seconds * factor for key, seconds in part.items()}
    return whole


def profile(whole):
    return estimates.profile(estimates.Estimate(whole, design(), resamples=5), {}, {})


class Products(unittest.TestCase):
    LAYER, DEEP, SMALL = products.SHAPES
    RATES = {"fp32": 40e9, "bf16": 800e9}

    def seconds(self, name, latency, byte=0.0):
        return {shape: latency + products.flop(shape) / self.RATES[name] + byte * products.result_bytes(name, shape)
                for shape in products.SHAPES}

    def entries(self, **of_types):
        """of_types: (latency, seconds of a byte of the result)"""
        return profile(of_rounds(products={
            (name, 1, *shape): seconds for name, numbers in of_types.items()
            for shape, seconds in self.seconds(name, *numbers).items()}))["products"]

    def test_call_result_and_arithmetic_come_back_out_of_the_typical_times(self):
        found = self.entries(fp32=(2e-6, 1e-9), bf16=(40e-6, 0.5e-9))

        self.assertEqual(found, {"fp32": dict(threads=1, gflop_per_s=40, result_ns_per_kib=1024),
                                 "bf16": dict(threads=1, gflop_per_s=800, result_ns_per_kib=512, latency_us=38)})
        self.assertNotIn("products", profile(rounds(2)))

    def test_a_latency_is_what_is_beyond_fp32s_and_unknown_without_it(self):
        self.assertEqual(self.entries(fp32=(2e-6,), bf16=(1e-6,))["bf16"]["latency_us"], 0)
        self.assertNotIn("latency_us", self.entries(bf16=(1e-6,))["bf16"])

    def test_nothing_is_negative(self):
        large = self.seconds("fp32", 0.0)

        self.assertEqual(products.terms("fp32", {**large, self.SMALL: 2 * large[self.LAYER]})[1], 0)
        latency, byte, rate = products.terms("fp32", {**large, self.DEEP: large[self.LAYER] / 2})
        self.assertEqual((latency, byte), (0, 0))
        self.assertAlmostEqual(rate, 40e9, delta=1)

    def test_each_product_has_other_weights_and_a_result_that_is_kept(self):
        alive, made = [0], []

        class Result:
            def __init__(self):
                alive[0] += 1

            def __del__(self):
                alive[0] -= 1

        def mm(left, weights):
            made.append((weights, alive[0]))
            return Result()

        other = types.SimpleNamespace(add_=lambda _: made.append("pass"))
        names = iter(range(1000))
        torch = types.SimpleNamespace(get_num_threads=lambda: 2, ones=lambda *_, dtype: next(names), mm=mm,
                                      zeros=lambda *_, dtype: other, float32="float32", bfloat16="bfloat16")
        timer = products.ProductTimer(torch, (self.SMALL,))
        made.clear()

        self.assertEqual(set(timer.round()), {(name, 2, *self.SMALL) for name in products.TYPES})
        of_fp32 = made[:2 * products.TRIES]
        self.assertEqual(of_fp32[::2], ["pass"] * products.TRIES)
        self.assertEqual(len({weights for weights, _ in of_fp32[1::2]}), products.TRIES)
        self.assertEqual([kept for _, kept in of_fp32[1::2]], list(range(products.TRIES)))

    def test_a_type_that_torch_does_not_multiply_is_left_out(self):
        def mm(a, b):
            if "bfloat16" in a:
                raise RuntimeError("not implemented")
            self.assertEqual((a, b), ((16, 32, "float32"), (32, 64, "float32")))

        torch = types.SimpleNamespace(
            get_num_threads=lambda: 2, ones=lambda *sides, dtype: (*sides, dtype), mm=mm,
            zeros=lambda *_, dtype: unittest.mock.Mock(), float32="float32", bfloat16="bfloat16")
        shape = products.Shape(16, 32, 64)

        self.assertEqual(set(products.ProductTimer(torch, (shape,)).round()), {("fp32", 2, *shape)})



def attention_seconds(row, rate):
    return {shape: {direction: row * attention.rows(shape) + attention.flop(shape, direction) / rate
                    for direction in attention.DIRECTIONS} for shape in attention.SHAPES}


class Attention(unittest.TestCase):
    SMALLER, LARGER = attention.SHAPES
    TIMED = len(products.TYPES) * len(attention.SHAPES) * len(attention.DROPOUTS)

    def test_its_arithmetic_is_half_a_square_and_five_products_backward(self):
        shape = attention.Shape(2, 3, 4, 5)

        self.assertEqual([attention.flop(shape, direction) for direction in attention.DIRECTIONS], [960, 2400])
        self.assertEqual(attention.rows(shape), 24)

    def test_rows_and_rates_come_back_out_of_the_typical_times(self):
        planted = {(0.0, "forward"): (0.1e-6, 260e9), (0.0, "backward"): (2.7e-6, 900e9),
                   (0.1, "forward"): (0.2e-6, 4e9), (0.1, "backward"): (0.3e-6, 12e9)}
        seconds = {("bf16", 1, dropout, direction, *shape): attention_seconds(*numbers)[shape][direction]
                   for (dropout, direction), numbers in planted.items() for shape in attention.SHAPES}

        found = profile(of_rounds(attention=seconds))["attention"]

        self.assertEqual(found, {"bf16": dict(threads=1, forward=dict(row_us=0.1, gflop_per_s=260),
                                              backward=dict(row_us=2.7, gflop_per_s=900), with_dropout=dict(
                                                  forward=dict(row_us=0.2, gflop_per_s=4),
                                                  backward=dict(row_us=0.3, gflop_per_s=12)))})
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
                         {("fp32", torch.get_num_threads(), dropout, direction, *shape)
                          for dropout in attention.DROPOUTS for direction in attention.DIRECTIONS
                          for shape in attention.SHAPES})
        self.assertGreater(min(found.values()), 0)
        self.assertIsNone(timer.operands["fp32", self.SMALLER][0][0].grad)

    def timed(self, tries):
        """A timer whose first times, one per type, shape and dropout, are the shortest, and then `tries` of each."""
        first = [(0.0, 0.0)] * self.TIMED
        torch = types.SimpleNamespace(get_num_threads=lambda: 1, float32=0, bfloat16=0)
        patch = unittest.mock.patch.multiple(attention.AttentionTimer, made=lambda *_: ((), ()), seconds=(
            unittest.mock.Mock(side_effect=first + tries)))
        with patch:
            timer = attention.AttentionTimer(torch)
            return timer.round()

    def test_the_least_of_each_direction_counts_and_no_first_time(self):
        found = self.timed([(2.0, 6.0), (3.0, 4.0), (5.0, 5.0)] * self.TIMED)

        self.assertEqual(found, {(name, 1, dropout, direction, *shape): seconds for name in products.TYPES
                                 for dropout in attention.DROPOUTS
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


class Operations(unittest.TestCase):
    def test_an_element_takes_what_a_larger_tensor_takes_more(self):
        planted = {"forward": 7.5e-9, "backward": 0.5e-9}
        seconds = {("dropout", "bf16", 2, direction, rows): 90e-6 + element * rows * 2 * operations.COLUMNS
                   for direction, element in planted.items() for rows in operations.ROWS}

        found = profile(of_rounds(operations=seconds))["operations"]

        self.assertEqual(found, {"dropout": {"bf16": dict(threads=2, forward_ns=7.5, backward_ns=0.5)}})
        self.assertNotIn("operations", profile(rounds(2)))

    def test_an_element_takes_no_less_than_nothing(self):
        self.assertEqual(operations.element_seconds(90e-6, 80e-6, 1), 0)

    def timed(self, seconds):
        """What a timer of two operations finds, whose calls take these in turn, or raise them."""
        torch = types.SimpleNamespace(get_num_threads=lambda: 1, float32=0, bfloat16=0)
        with unittest.mock.patch.object(operations, "operations", lambda *_: {"a": ("a", []), "b": ("b", [])}), \
                unittest.mock.patch.object(operations.OperationTimer, "seconds", unittest.mock.Mock(
                    side_effect=seconds)):
            return operations.OperationTimer(torch).round()

    def test_the_least_of_each_direction_counts_and_no_first_time(self):
        first, tries = [(0.0, 0.0)] * 8, [(2.0, 6.0), (3.0, 4.0)] * 8

        self.assertEqual(self.timed(first + tries),
                         {(operation, name, 1, direction, rows): seconds for operation in "ab"
                          for name in operations.TYPES for rows in operations.ROWS
                          for direction, seconds in (("forward", 2.0), ("backward", 4.0))})

    def test_what_torch_has_not_in_a_type_is_left_out_in_both_sizes(self):
        refused, first = [(0.0, 0.0), RuntimeError("not implemented")], [(0.0, 0.0)] * 6

        found = self.timed(refused + first + [(1.0, 1.0)] * 12)

        self.assertEqual({key[:2] for key in found}, {("b", "fp32"), ("a", "bf16"), ("b", "bf16")})

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "needs PyTorch and transformers")
    def test_each_is_timed_in_both_directions_and_sizes_and_leaves_no_gradient(self):
        import torch

        timer = operations.OperationTimer(torch)
        found = timer.round()

        names = {"dropout", "gelu", "gelu_tanh", "gelu_new", "silu", "layer_norm", "rms_norm", "rotary", "log_softmax"}
        self.assertEqual({key for key in found if key[1] == "fp32"},
                         {(name, "fp32", torch.get_num_threads(), direction, rows) for name in names
                          for direction in attention.DIRECTIONS for rows in operations.ROWS})
        self.assertGreater(min(found.values()), 0)
        self.assertEqual({operand.grad for _, operands in timer.cases.values() for operand in operands}, {None})


if __name__ == "__main__":
    unittest.main()
