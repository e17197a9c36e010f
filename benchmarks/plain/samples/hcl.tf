# A queue of orders, and who may read it.
terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.0"
    }
  }
}

variable "environments" {
  type        = map(object({ size = number, public = bool }))
  description = "The environments by name."
  default     = {}
}

locals {
  prefix = "orders-${terraform.workspace}"
  public = [for name, one in var.environments : name if one.public]
  tags   = merge(var.tags, { owner = "shop", size = length(local.public) })
}

resource "aws_sqs_queue" "orders" {
  for_each                   = var.environments
  name                       = "${local.prefix}-${each.key}"
  visibility_timeout_seconds = each.value.size > 10 ? 60 : 30
  tags                       = local.tags

  dynamic "rule" {
    for_each = local.public
    content {
      name = rule.value
    }
  }

  policy = <<-EOT
    {"Version": "2012-10-17", "Name": "${each.key}"}
  EOT

  lifecycle {
    ignore_changes = [tags["size"], name]
  }
}

output "urls" {
  value = { for key, queue in aws_sqs_queue.orders : key => queue.url }
}
