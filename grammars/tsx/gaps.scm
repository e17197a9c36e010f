; inherits: typescript, jsx
; TSX has nothing beyond what TypeScript and JSX have.
