; Parsed, and refused by most readers: a value without a key.
(block_mapping_pair !key) @refuse
; A name of an anchor with signs that readers do not take.
([(anchor_name) (alias_name)] @refuse (#not-match? @refuse "^[A-Za-z0-9_-]+$"))
