"""What several tests share: brokers, and the rules that hold the style."""
