; Parsed, and refused by most readers: a value without a key.
(block_mapping_pair !key) @refuse
