"""The built pages in a browser, with recorded answers of a grid."""
