# Uploads the functions and the template that `joiner template --out GENERATED` wrote, and makes the stack from them. All
# settings are in the template: write it anew, and apply, to change one.

terraform {
  required_version = ">= 1.3"
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 5.0" }
  }
}

variable "stack" {
  description = "Name of the stack: joiner-CLUSTER, without a namePrefix of the settings."
  type        = string
}

variable "release" {
  description = "Folder of the unpacked release, which has the zips of the functions."
  type        = string
}

variable "generated" {
  description = "Folder that joiner template wrote to."
  type        = string
  default     = "."
}

locals {
  list     = jsondecode(file("${var.generated}/${var.stack}.assets.json"))
  template = "${var.generated}/${var.stack}.template.json"
}

data "aws_s3_bucket" "assets" {
  bucket = local.list.bucket
}

# Without create_before_destroy Terraform deletes the zips of the release before, and then updates the stack: an update
# that fails could not roll back to them.
resource "aws_s3_object" "function" {
  for_each    = { for f in local.list.files : f.key => f }
  bucket      = local.list.bucket
  key         = each.value.key
  source      = "${var.release}/${each.value.path}"
  source_hash = each.value.sha256
  lifecycle { create_before_destroy = true }
}

# Its key has its checksum: a changed template has another address, by which Terraform sees the change.
resource "aws_s3_object" "template" {
  bucket      = local.list.bucket
  key         = local.list.templateKey
  source      = local.template
  source_hash = filesha256(local.template)
  lifecycle { create_before_destroy = true }
}

resource "aws_cloudformation_stack" "joiner" {
  name         = local.list.stack
  template_url = "https://${data.aws_s3_bucket.assets.bucket_regional_domain_name}/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_NAMED_IAM"]
  depends_on   = [aws_s3_object.function]
}

output "version" {
  description = "The release that the stack is of."
  value       = aws_cloudformation_stack.joiner.outputs["Version"]
}

output "node_role_arn" {
  description = "The role of the nodes; name it in spec.role of an EC2NodeClass."
  value       = aws_cloudformation_stack.joiner.outputs["NodeRoleArn"]
}

output "catalog_bucket" {
  description = "Where the catalog of instance types and prices is kept."
  value       = aws_cloudformation_stack.joiner.outputs["CatalogBucket"]
}
