// Orders of a shop.
import Foundation

struct Item: Codable {
    let name: String
    var price: Double
    var count: Int = 1
}

enum ShopError: Error {
    case nobody(String)
    case empty
}

final class Order {
    private let customer: String?
    private(set) var items: [Item]

    init(customer: String?, items: [Item] = []) {
        self.customer = customer
        self.items = items
    }

    var total: Double {
        return items.reduce(0) { $0 + $1.price * Double($1.count) }
    }

    func isLarge(limit: Double = 50) throws -> Bool {
        guard let customer = customer else {
            throw ShopError.nobody("it's nobody's order")
        }
        if total > limit && !items.isEmpty {
            print("large: \(customer)")
            return true
        }
        return false
    }
}

func load(from path: String) -> [Item] {
    var found: [Item] = []
    for line in path.split(separator: "\n") {
        let parts = line.split(separator: ",")
        found.append(Item(name: String(parts[0]), price: 1.5))
    }
    switch found.count {
    case 0:
        return []
    default:
        return found.filter { $0.price > 0 }
    }
}
