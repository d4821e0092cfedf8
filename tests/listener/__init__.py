"""Tests of the listener for transcribers."""
