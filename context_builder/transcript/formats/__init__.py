"""The formats of transcripts and of chats, one a module, and the tables by which they are found."""
