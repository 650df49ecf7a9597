<?php echo "small\n";
