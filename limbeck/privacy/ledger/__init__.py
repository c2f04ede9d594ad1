"""The budget ledger: what has been granted, what has been spent, and a proven filter that refuses the rest."""

from limbeck.privacy.ledger.account import Account
from limbeck.privacy.ledger.grant import Grant
from limbeck.privacy.ledger.ledger import Ledger, Reservation

__all__ = ["Account", "Grant", "Ledger", "Reservation"]
