"""What every KeyWrapper and every Signer does."""

import pytest

from factbook.ports.cipher import Forged
from factbook.ports.log.checkpoints import Signer
from factbook.ports.log.sealing import KeyWrapper
from factbook.verify.notes import read_key


class KeyWrapperContract:
    wrapper: KeyWrapper

    def test_a_data_key_is_256_fresh_bits_and_opens_again(self) -> None:
        (one, wrapped), (other, _) = self.wrapper.new_key("a"), self.wrapper.new_key("a")
        assert len(one) == len(other) == 32
        assert one != other
        assert one not in wrapped
        assert self.wrapper.unwrap("a", wrapped) == one

    def test_a_key_of_one_tenant_opens_for_no_other(self) -> None:
        _, wrapped = self.wrapper.new_key("a")
        with pytest.raises(Forged):
            self.wrapper.unwrap("b", wrapped)

    def test_a_key_from_elsewhere_is_wrapped_for_its_tenant_alone(self) -> None:
        plain = bytes(range(32))
        wrapped = self.wrapper.wrap("a", plain)
        assert plain not in wrapped
        assert self.wrapper.unwrap("a", wrapped) == plain
        with pytest.raises(Forged):
            self.wrapper.unwrap("b", wrapped)

    def test_bytes_that_were_never_wrapped_open_nothing(self) -> None:
        with pytest.raises(Forged):
            self.wrapper.unwrap("a", b"no cipher text at all")


class SignerContract:
    signer: Signer

    @pytest.mark.parametrize("text", [b"factbook.example/t/a\n1\nAAAA\n", bytes(4_096)])
    def test_a_signature_holds_for_its_text_and_key_alone(self, text: bytes) -> None:
        key = read_key(self.signer.key.vkey)
        signature = self.signer.sign(text)
        assert key.signed(text, signature)
        assert not key.signed(text + b"!", signature)
