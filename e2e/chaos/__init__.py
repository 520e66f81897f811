"""The kill campaign: everything that can die dies, again and again, and nothing may be lost."""
