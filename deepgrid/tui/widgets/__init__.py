"""Parts of screens: tables and texts of any length that draw only what is visible, bars, fields of forms."""
