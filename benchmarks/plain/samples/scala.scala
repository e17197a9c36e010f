// Orders of a shop.
package shop

import scala.io.Source

case class Item(name: String, price: Double, count: Int = 1)

sealed trait Size
case object Large extends Size
case object Small extends Size

class Order(val customer: Option[String], items: List[Item]) {
  def total: Double = items.map(i => i.price * i.count).sum

  def size(limit: Double = 50.0): Size = {
    if (total > limit && items.nonEmpty) {
      Large
    } else {
      Small
    }
  }

  override def toString: String = s"${customer.getOrElse("nobody")} owes $total"
}

object Shop {
  private val limits = Map("small" -> 10, "large" -> 100)

  def load(path: String): List[Order] = {
    val lines = Source.fromFile(path).getLines().toList
    for {
      line <- lines
      parts = line.split(",")
      if parts.length > 1
    } yield new Order(Some(parts(0)), List(Item("all", parts(1).toDouble)))
  }

  def describe(order: Order): String = order.size() match {
    case Large => "it's large"
    case Small if order.total > 0 => "small"
    case _ => "empty"
  }

  def main(args: Array[String]): Unit = {
    val path = args.headOption.getOrElse("orders.csv")
    load(path).foreach(order => println(describe(order)))
  }
}
