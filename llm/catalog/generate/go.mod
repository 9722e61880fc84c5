module github.com/pinch-agent/pinch/llm/catalog/generate

go 1.26.6
