# Writes a manual page of 60 sections, each with options and a table.
BEGIN {
    print "'\\\" t\n.TH BIG 1 2026-01-01 numalloc\n.SH NAME\nbig \\- a page of many parts\n.SH SYNOPSIS\n.B big\n.RI [ number ]"
    for (part = 1; part <= 60; part++) {
        print ".SH PART " part
        for (line = 1; line <= 30; line++)
            print ".TP\n.BI \\-o" line " number\nThe \\(lqnumber\\(rq is " line * 7919 % 101 " or\n.IR " part * line " ."
        print ".TS\nallbox tab(;);\nl r.\nname;value"
        for (line = 1; line <= 10; line++) print "row " line ";" line * part
        print ".TE"
    }
}
