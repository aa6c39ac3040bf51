"""Texts as numbers of tokens, and chats as texts."""
