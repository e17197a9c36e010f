// Orders of a shop.
package shop

import java.io.File

data class Item(val name: String, val price: Double, val count: Int = 1)

class Order(private val customer: String?, private val items: List<Item>) {
    val total: Double
        get() = items.sumOf { it.price * it.count }

    fun isLarge(limit: Double = 50.0): Boolean {
        if (total > limit && items.isNotEmpty()) {
            return true
        } else if (customer == null) {
            throw IllegalArgumentException("nobody's order")
        }
        return false
    }

    override fun toString(): String = "$customer owes ${"%.2f".format(total)}"
}

fun load(path: String): List<Order> {
    val orders = mutableListOf<Order>()
    for (line in File(path).readLines()) {
        val (name, price) = line.split(",")
        orders.add(Order(name, listOf(Item("all", price.toDouble()))))
    }
    return orders.filter { order -> order.isLarge() }
}

fun describe(size: Int): String = when {
    size > 100 -> "large"
    size in 10..100 -> "middle"
    else -> "small"
}

fun main(args: Array<String>) {
    val path = args.firstOrNull() ?: "orders.csv"
    println(load(path).joinToString("\n"))
}
