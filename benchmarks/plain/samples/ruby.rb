# Orders of a shop.
require "json"

module Shop
  LIMIT = 50

  class Order
    attr_reader :items, :customer

    def initialize(customer, items = [])
      @customer = customer
      @items = items
    end

    def total
      items.sum { |item| item[:price] * (item[:count] || 1) }
    end

    def each(&block)
      return enum_for(:each) unless block
      items.each do |item|
        block.call(item)
      end
    end

    def to_s
      "#{customer} owes #{format('%.2f', total)}"
    end

    def large?
      if total > LIMIT && !items.empty?
        true
      elsif customer.nil?
        raise ArgumentError, "nobody's order"
      else
        false
      end
    end
  end

  def self.load(path)
    data = JSON.parse(File.read(path), symbolize_names: true)
    data.map { |row| Order.new(row[:customer], row.fetch(:items, [])) }
  rescue Errno::ENOENT => e
    warn "cannot read #{path}: #{e.message}"
    []
  end
end

orders = Shop.load(ARGV[0] || 'orders.json')
puts orders.select(&:large?).map(&:to_s).join("\n")
