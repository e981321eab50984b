"""Shared by all tests; beside this file, the helpers of a room are imported as `room.helper`."""
