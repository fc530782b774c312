"""Reports: one self-contained HTML file each. The first line is the verdict, then pictures, table, method."""
