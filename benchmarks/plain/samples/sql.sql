-- The tables of a small shop.
CREATE TABLE customers (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  city TEXT DEFAULT 'Bern',
  joined DATE
);

CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer INTEGER REFERENCES customers (id),
  total NUMERIC(10, 2) CHECK (total >= 0),
  note TEXT
);

CREATE INDEX orders_of_customer ON orders (customer, total DESC);

INSERT INTO customers (id, name, city) VALUES (1, 'O''Hara', 'Biel'), (2, 'Meier', 'Chur');
INSERT INTO orders (id, customer, total, note) VALUES (1, 1, 12.5, 'by post'), (2, 2, 8, NULL);

UPDATE orders SET note = upper(note), total = total * 1.1 WHERE customer IN (SELECT id FROM customers WHERE city = 'Biel');

SELECT c.name, count(o.id) AS orders, sum(o.total) AS spent
FROM customers AS c
LEFT JOIN orders AS o ON o.customer = c.id
WHERE c.city <> 'Zug' AND (o.total > 5 OR o.note IS NULL)
GROUP BY c.name
HAVING count(o.id) >= 1
ORDER BY spent DESC
LIMIT 10;

CREATE VIEW large AS
SELECT customer, CASE WHEN total > 100 THEN 'large' ELSE 'small' END AS size
FROM orders;
