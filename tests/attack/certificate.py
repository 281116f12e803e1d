"""A self-signed certificate for loopback, made when a test needs one: no key lies in the repository."""

import base64
import hashlib
import secrets
from pathlib import Path

PUBLIC = 65537
_RSA, _SHA256_RSA, _NAME = "2a864886f70d010101", "2a864886f70d01010b", "550403"
_BASIC_CONSTRAINTS, _ALTERNATIVE_NAMES = "551d13", "551d11"


def _tlv(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    size = len(body).to_bytes(max((len(body).bit_length() + 7) // 8, 1), "big")
    return bytes([tag]) + (size if len(body) < 128 else bytes([128 + len(size)]) + size) + body


def _integer(n: int) -> bytes:
    return _tlv(2, n.to_bytes(n.bit_length() // 8 + 1, "big"))


def _sequence(*parts: bytes) -> bytes:
    return _tlv(0x30, *parts)


def _oid(digits: str) -> bytes:
    return _tlv(6, bytes.fromhex(digits))


def _is_prime(n: int) -> bool:
    """Test a candidate by Fermat with several bases, which is enough for a key of a minute's life."""
    return all(n % small for small in (3, 5, 7, 11, 13, 17, 19, 23)) and all(
        pow(b, n - 1, n) == 1 for b in (2, 3, 5, 7)
    )


def _prime(bits: int) -> int:
    while True:
        candidate = secrets.randbits(bits) | (3 << (bits - 2)) | 1
        if candidate % PUBLIC != 1 and _is_prime(candidate):
            return candidate


def _pem(kind: str, der: bytes) -> str:
    return f"-----BEGIN {kind}-----\n{base64.encodebytes(der).decode()}-----END {kind}-----\n"


def write_certificate(folder: Path, *addresses: str) -> tuple[Path, Path]:
    """Write a certificate for IP addresses and its key, and return their paths."""
    p, q = _prime(1024), _prime(1024)
    n, d = p * q, pow(PUBLIC, -1, (p - 1) * (q - 1))
    key = _sequence(*map(_integer, (0, n, PUBLIC, d, p, q, d % (p - 1), d % (q - 1), pow(q, -1, p))))
    algorithm, name = (
        _sequence(_oid(_SHA256_RSA), b"\5\0"),
        _sequence(_tlv(0x31, _sequence(_oid(_NAME), _tlv(12, b"loopback")))),
    )
    public = _sequence(_sequence(_oid(_RSA), b"\5\0"), _tlv(3, b"\0", _sequence(_integer(n), _integer(PUBLIC))))
    names = _sequence(*(_tlv(0x87, bytes(map(int, address.split(".")))) for address in addresses))
    extensions = _sequence(
        _sequence(_oid(_BASIC_CONSTRAINTS), _tlv(1, b"\xff"), _tlv(4, _sequence(_tlv(1, b"\xff")))),
        _sequence(_oid(_ALTERNATIVE_NAMES), _tlv(4, names)),
    )
    validity = _sequence(_tlv(23, b"200101000000Z"), _tlv(23, b"491231235959Z"))
    signed = _sequence(
        _tlv(0xA0, _integer(2)), _integer(1), algorithm, name, validity, name, public, _tlv(0xA3, extensions)
    )
    digest = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(signed).digest()
    padded = b"\0\1" + b"\xff" * (256 - 3 - len(digest)) + b"\0" + digest
    signature = pow(int.from_bytes(padded, "big"), d, n).to_bytes(256, "big")
    certificate = _sequence(signed, algorithm, _tlv(3, b"\0", signature))
    (folder / "certificate.pem").write_text(_pem("CERTIFICATE", certificate))
    (folder / "key.pem").write_text(_pem("RSA PRIVATE KEY", key))
    return folder / "certificate.pem", folder / "key.pem"
