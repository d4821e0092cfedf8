"""Short secrets are masked as people say them, write them down and are sent them; talk about them is not."""

from __future__ import annotations

import pytest

from context_builder.redaction import SecretRedactor

PASSWORD = "Xy7qRt9Lm"
BASE32 = "JBSWY3DPEHPK3PXP"
SEED = " ".join(["witch", "share"] * 6)
LISTED = "gravity machine north sort system female\nfilter attitude volume fold club stay"
NUMBERED = " ".join(f"{place}. {word}" for place, word in enumerate(SEED.split(), 1))

SECRET = (
    *(("PIN: 19870412", "1987"), ("totp: 20241127", "2024"), ("recovery codes:\n20241127", "2024")),
    *(("backup codes: 19840312, 73625142", word) for word in ("1984", "7362")),
    *(("backup codes: kelpforest, 73625142", "7362"), ("backup codes:\n19840312\n73625142", "7362")),
    *(("the PIN is 4711 users should enter it", "4711"), ("the door code is 4711 people know it", "4711")),
    *(("my PIN is 4711 people who are late need it", "4711"), ("door code is 2271 hours are nine to five", "2271")),
    *(("access code: 4711 users: ann, bob", "4711"), ("pin=4711 version=2", "4711"), ("PIN: 4711 page 3", "4711")),
    *(("the pin number is four seven double one", "seven"), ("PIN is triple seven one", "triple")),
    *(("The PIN for card 1234 is 9876", "9876"), ("the PIN of room 1204 is 9876", "9876")),
    *(("PIN: 4711", "4711"), ("my pin is 4 7 1 1", "4 7 1 1"), ("die PIN ist 4711", "4711"), ("CVV: 123", "123")),
    *(("pin number: four seven one one", "seven one"), ("the gate code is now 2271.", "2271"), ("PIN 4711", "4711")),
    *(("your verification code is G-482913", "482913"), ("safe combination: 12-34-56", "34")),
    *(("OTP: 482913", "482913"), ("PUK 12345678", "12345678")),
    *(("the code for the garage door is 5041", "5041"), ("the old locker PIN 7642", "7642")),
    *(("the PIN's 4711", "4711"), ('{"pin": 4711}', "4711"), ("PIN:\n4711", "4711"), ("| PIN |\n| 4711 |", "4711")),
    *(("the pin for my card is 4711", "4711"), ("4711 is the door code", "4711"), ("2FA: JBSW Y3DP EHPK", "EHPK")),
    *((f"log in as ann / {PASSWORD}", PASSWORD), (f"credentials: ann {PASSWORD}", PASSWORD)),
    *((f"login with ann and {PASSWORD}", PASSWORD), (f"WiFi: Guest / {PASSWORD}", PASSWORD)),
    *((f"p4ssw0rd: {PASSWORD}", PASSWORD), (f"p@$$word = {PASSWORD}", PASSWORD), (f"mdp: {PASSWORD}", PASSWORD)),
    *((f"WPA2: {PASSWORD}", PASSWORD), (f"WPA2-PSK: {PASSWORD}", PASSWORD), ("wifi key: correcthorse9", "correct")),
    *(("WIFI:S:Home;T:WPA;P:rain4you;;", "rain4you"), (r"WIFI:T:WPA;S:a\;b;P:a long; one;;", "a long")),
    *((f"otpauth://totp/Lab:ann?secret={BASE32}&issuer=Lab", BASE32), (f"TOTP: {BASE32}", BASE32)),
    *(("2FA secret: jbsw y3dp ehpk 3pxp", "ehpk"), ("recovery key: 8F 3A 91 BC 77 D2 0C 4E", "77")),
    *(("backup codes: 1234 5678, 8765 4321", "8765"), ("recovery codes:\n\n8f3a-91bc\n77d2-0c4e", "77d2")),
    *(("Your backup codes for the lab:\n 1. 8f3a 91bc\n 2. 77d2 0c4e", "0c4e"),),
    *(("| password |\n|---|\n| rain4you |", "rain4you"), ("- password\n- rain4you", "rain4you")),
    *(("| user | password |\n|---|---|\n| ann | rain4you |", "rain4you"), ("1. password\n2. rain4you", "rain4you")),
    *(("my password, spelled: r a i n 4 y o u", "i n 4"), ("password spelled out: X-y-7-q-R", "7-q")),
    *(("the password is capital X, small y, seven, dash, papa", "seven"), ("password: romeo alpha nine zulu", "zulu")),
    *((f"seed phrase: {SEED[:24]}{line}{SEED[24:]}", "share") for line in ("\n", "\r\n> ", "\n    ")),
    *((f"{before}{LISTED}", "attitude") for before in ("", "write these down: ", "wallet\n", "seed phrase: ")),
    *((LISTED.replace("\n", " ").replace("a", "\u0430"), "ttitude"), (LISTED.replace(" ", "\n"), "attitude")),
    (LISTED.replace(" ", ", ").upper(), "ATTITUDE"),
    *((f"seed phrase: {SEED}", "witch"), (f"Seed phrase: {SEED}", "witch"), (f"SEED PHRASE:{SEED.upper()}", "WITCH")),
    *((f"Recovery phrase: {SEED.title()}", "Witch"), (f"My seed phrase:\n\n> {SEED}", "witch")),
    *((f"seed phrase (24 words):\n{NUMBERED}", "share"), (f"seed words: {NUMBERED}", "share")),
    *(("Seed phrase:\n" + NUMBERED.replace("e ", "e\n"), "share"), ("recovery phrase\n" + "witch share " * 3, "share")),
    *((f"recovery codes: 8f3a-91bc {word} 77d2-0c4e", "77d2") for word in ("and", "or", "und", ", and", "&")),
    *(("backup code 1: 8f3a-91bc", "91bc"), ("backup code #2 is 8f3a-91bc", "91bc")),
    *(("backup codes (print them): 8f3a-91bc", "91bc"), ("my recovery code was 8f3a-91bc", "91bc")),
    *(("backup codes: 8f3a-91bc thanks", "91bc"), ("backup codes: 8f3a-91bc, 77d2-0c4e already used", "0c4e")),
    *((f"backup codes:\n- 77d2-0c4e{used}\n- 8f3a-91bc", "77d2") for used in (" - used", " (used 3 May)", " unused")),
    *((f"backup codes:\n- 77d2-0c4e{used}\n- 8f3a-91bc", "91bc") for used in (" - used", " (used 3 May)", ": free")),
    *((f"my backup code {what} 8f3a-91bc", "91bc") for what in ("for the lab:", "of the lab is", "I got was", "= [")),
    *(('"backup_codes": ["8f3a-91bc", "77d2-0c4e"]', "0c4e"), ("backup codes: 1) 8f3a-91bc 2) 77d2-0c4e", "0c4e")),
    *((f"{name} {SEED}", "witch") for name in ("mnemonic:", "BIP39:", "secret seed phrase", "seed phrase, keep it:")),
    *(("PIN: 2024-1234", "1234"), ("OTP 482913 times out", "482913"), ("backup codes:\n- 77d2-0c4e ✓", "77d2")),
    *(("backup codes:\n[x] 77d2-0c4e\n[ ] 8f3a-91bc", "91bc"), ("backup codes:\n~~77d2-0c4e~~", "77d2")),
    *(("| user | 2FA backup codes |\n|---|---|\n| ann | 8f3a-91bc |\n| bob | `77d2-0c4e` |", "77d2"),),
    *(("user,password,recovery code\nann,rain4you,8f3a-91bc", "91bc"), ("name\tbackup codes\nann\t8f3a-91bc", "91bc")),
)  # fmt: skip

TALK = (
    "OTP: 1200 users, TOTP: 300 users",
    "the gate code is 1000 lines of Python",
    "PIN: 1987-04-12",
    "the code is on page 1204 of the report 2024-10-12",
    "call 030 1234567 about room 1204, order 73625142",
    "safe code review: 4711 lines",
    "the pin is 1000 dollars",
    "legal winner thank year\nwe act again next week about this idea",
    "one six one two one six zero one eight one one six one",
    "backup codes: printed with the account 73625142",
    "recovery codes:\nask Ann\n73625142 is her order",
    "I can't find my seed phrase\nmaybe look inside desk drawer upstairs",
    "Connect pin 13 and pins 1 2 3 4.",
    "the pin is 1.26.4, not 2.0",
    "pin 10 000 dollars on it",
    "a PIN has 4 digits",
    "error code 4711",
    "the zip code is 90210",
    "security code review on 2024-10-12",
    "access code paths",
    "OTP: 27.0.1",
    "sms code: 160 characters",
    "her PIN was changed",
    "TOTP: time-based passwords",
    "combination of the two is 1000",
    "log in with Google and GitHub",
    "login with OAuth2 / OpenID",
    "log in to server1 with ssh",
    "login: ann, room 12",
    "logged in at 10:30 and began",
    "credentials for staging: ask Ann",
    "the wifi at building 12 is slow",
    "WPA2: enabled",
    "wifi is 802.11ac on channel36",
    "WPA2 is AES-128 based",
    "license key: MIT",
    "the product code is 1234",
    "backup codes: they were lost with that bank",
    "recovery codes:\nkeep them in a safe2",
    "p4ssw0rd is a bad password",
    "my password is long, I use a manager",
    "password, spelled wrong: a bit",
    "seed phrase: write the words on paper",
    "- password\n- second factor",
    "| password |\n|---|\n| required |",
    "1. password\n2. user name",
    "- tokens\n- 4096",
    "sign in with GitHub and Office365",
    "credentials for users and Windows11",
    "login with Anna and Sarah1999",
    "log in to v2.3.1, build20240501",
    "totp 2024-11-27 review",
    "verification code of 2024-2025",
    "safe code 2019 edition",
    "gate code is 1000 lines",
    "alarm code - 2019 version",
    "the PIN code 94103 area",
    "ticket 12345 is the door code",
    "GPIO pin: 1234",
    "product codes:\n- A1234567\n- B1234567",
    "setup code:\nfoobar1234\nimport numpy1",
    "recovery key for the vault\nmodel2024",
    "license keys\nWindows11 Office365",
    "Seed phrase: write them down and keep them in a place where only your family can find them one day",
    "recovery phrase:\nnever share them with anyone, ever",
    "seed words:\n- apples\n- pears",
    "my seed phrase is twelve words long which nobody else should ever see without asking first please",
    "name,product key,price\nfoo,SKU12345,12",
    "two-factor codes are 2factor12 things",
    "recovery codes for the team\nare at page 12345678",
)


@pytest.mark.parametrize(("text", "secret"), SECRET)
def test_a_short_secret_is_masked(text: str, secret: str) -> None:
    shown = SecretRedactor().redact(text)
    assert secret not in shown
    assert "§§secret(" in shown


def test_what_follows_a_pin_on_the_next_line_stays() -> None:
    assert SecretRedactor().redact("my pin is 4711\n2024-11-27") == "my pin is §§secret(PIN)\n2024-11-27"


def test_of_a_table_only_the_cells_with_secrets_are_masked() -> None:
    table = "| user | password | backup codes | note |\n|---|---|---|---|\n| abcd1234 | rain4you | {} | efgh5678 |"
    masked = "| abcd1234 | §§secret(PASSWORD) | §§secret(KEY) | efgh5678 |"
    assert SecretRedactor().redact(table.format("8f3a-91bc, 77d2-0c4e")).endswith(masked)


@pytest.mark.parametrize("text", TALK)
def test_talk_about_them_stays(text: str) -> None:
    assert SecretRedactor().redact(text) == text
