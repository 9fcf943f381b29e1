"""The offline verifier: judges exported logs with a public key, and trusts nothing else.

Needs the standard library and `cryptography` only, and imports nothing else of factbook: this folder can be lifted out.
Start at `judges`; `python -m factbook.verify run|audit|receipt FILE --vkey KEY` judges a file.
"""
