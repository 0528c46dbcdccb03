BoutputJ€	
