"""Short secrets are masked as people say them, write them down and are sent them; talk about them is not."""

from __future__ import annotations

import pytest

from context_builder.redaction import SecretRedactor

PASSWORD = "Xy7qRt9Lm"
BASE32 = "JBSWY3DPEHPK3PXP"

SECRET = (
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
    *((f"seed phrase: {'witch share ' * 6}".strip(), "witch"),),
)  # fmt: skip

TALK = (
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
)


@pytest.mark.parametrize(("text", "secret"), SECRET)
def test_a_short_secret_is_masked(text: str, secret: str) -> None:
    shown = SecretRedactor().redact(text)
    assert secret not in shown
    assert "§§secret(" in shown


@pytest.mark.parametrize("text", TALK)
def test_talk_about_them_stays(text: str) -> None:
    assert SecretRedactor().redact(text) == text
