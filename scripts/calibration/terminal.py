"""What scripts print: nothing of a file's name or content that a terminal would obey."""


def shown(text):
    """`text` with every control character but line breaks, and every one that turns the direction of reading, as
    "\\x1B": each byte of its UTF-8, as the program itself shows it."""
    return "".join(letter if letter == "\n" or letter.isprintable() else
                   "".join(f"\\x{byte:02X}" for byte in letter.encode(errors="surrogateescape"))
                   for letter in str(text))
