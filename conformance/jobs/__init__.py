"""Jobs that processes run side by side: what they have found so far, and which are tried again."""
