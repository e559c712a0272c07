"""What dstune draws by a micro-step's seed, as core/device/operations/random.hpp says."""
import math

BITS = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
    return z ^ (z >> 31)


def seed_of(micro_step_seed, place):
    """seed_of() of core/train/batch_context.hpp."""
    return mix((micro_step_seed + place * GOLDEN + GOLDEN) & BITS)


def random_bits(seed, index):
    key = mix(mix((seed + GOLDEN) & BITS))
    return mix((key + index * GOLDEN) & BITS)


def masked_tokens(tokens, seed, mask_token, padding, vocabulary, probability=0.15):
    """Inputs and labels of MaskTokens; -100 where nothing is asked."""
    def shown(token):
        return (token + 1) % vocabulary if token == padding else token

    inputs, labels = [], []
    for i, token in enumerate(map(shown, tokens)):
        bits = random_bits(seed, 2 * i)
        chosen, kind = bits >> 32 < int(probability * 2**32), bits & 0xFFFFFFFF
        labels.append(token if chosen else -100)
        if not chosen or kind >= int(0.9 * 2**32):
            inputs.append(token)
        elif kind < int(0.8 * 2**32):
            inputs.append(mask_token)
        else:
            inputs.append(shown((random_bits(seed, 2 * i + 1) >> 32) * vocabulary >> 32))
    return inputs, labels


def drawn_tokens(count, vocabulary, seed):
    """FillTokens."""
    log_of_all = math.log(vocabulary + 1)
    ranks = [int(math.exp((random_bits(seed, i) >> 11) * 2.0**-53 * log_of_all)) for i in range(count)]
    return [min(rank, vocabulary) - 1 for rank in ranks]
