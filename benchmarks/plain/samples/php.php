<?php
// Orders of a shop.
declare(strict_types=1);

namespace Shop;

final class Order implements \JsonSerializable
{
    private const LIMIT = 50;

    public function __construct(private string $customer, private array $items = [])
    {
    }

    public function total(): float
    {
        $sum = 0.0;
        foreach ($this->items as $name => $item) {
            $sum += $item['price'] * ($item['count'] ?? 1);
        }
        return round($sum, 2);
    }

    public function isLarge(): bool
    {
        if ($this->total() > self::LIMIT && count($this->items) > 0) {
            return true;
        } elseif ($this->customer === '') {
            throw new \InvalidArgumentException("nobody's order");
        }
        return false;
    }

    public function jsonSerialize(): array
    {
        return ['customer' => $this->customer, 'total' => $this->total()];
    }
}

function load(string $path): array
{
    $rows = json_decode(file_get_contents($path), true);
    $orders = array_map(fn (array $row) => new Order($row['customer'], $row['items']), $rows);
    return array_filter($orders, function (Order $order): bool {
        return $order->isLarge();
    });
}

echo json_encode(load($argv[1] ?? 'orders.json')), PHP_EOL;
