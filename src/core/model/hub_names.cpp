#include "core/model/hub_names.hpp"

#include <string>

#include "core/input/key_rules.hpp"

namespace dstune {

namespace {

constexpr HubNames kHubNames[] = {
    {"gpt2", "openai-community/gpt2"},
    {"gpt2-medium", "openai-community/gpt2-medium"},
    {"gpt2-large", "openai-community/gpt2-large"},
    {"gpt2-xl", "openai-community/gpt2-xl"},
    {"distilgpt2", "distilbert/distilgpt2"},
    {"pythia-14m", "EleutherAI/pythia-14m"},
    {"pythia-31m", "EleutherAI/pythia-31m"},
    {"pythia-70m", "EleutherAI/pythia-70m EleutherAI/pythia-70m-deduped"},
    {"pythia-160m", "EleutherAI/pythia-160m EleutherAI/pythia-160m-deduped"},
    {"pythia-410m", "EleutherAI/pythia-410m EleutherAI/pythia-410m-deduped"},
    {"pythia-1b", "EleutherAI/pythia-1b EleutherAI/pythia-1b-deduped"},
    {"pythia-1.4b", "EleutherAI/pythia-1.4b EleutherAI/pythia-1.4b-deduped"},
    {"pythia-2.8b", "EleutherAI/pythia-2.8b EleutherAI/pythia-2.8b-deduped"},
    {"pythia-6.9b", "EleutherAI/pythia-6.9b EleutherAI/pythia-6.9b-deduped"},
    {"pythia-12b", "EleutherAI/pythia-12b EleutherAI/pythia-12b-deduped"},
    {"gpt-neox-20b", "EleutherAI/gpt-neox-20b"},
    {"opt-125m", "facebook/opt-125m"},
    {"opt-350m", "facebook/opt-350m"},
    {"opt-1.3b", "facebook/opt-1.3b"},
    {"opt-2.7b", "facebook/opt-2.7b"},
    {"opt-6.7b", "facebook/opt-6.7b"},
    {"opt-13b", "facebook/opt-13b"},
    {"opt-30b", "facebook/opt-30b"},
    {"opt-66b", "facebook/opt-66b"},
    {"llama-2-7b", "meta-llama/Llama-2-7b-hf meta-llama/Llama-2-7b-chat-hf lmsys/vicuna-7b-v1.5"},
    {"llama-2-13b",
     "meta-llama/Llama-2-13b-hf meta-llama/Llama-2-13b-chat-hf lmsys/vicuna-13b-v1.5"},
    {"llama-2-70b", "meta-llama/Llama-2-70b-hf meta-llama/Llama-2-70b-chat-hf"},
    {"llama-3-8b", "meta-llama/Meta-Llama-3-8B meta-llama/Meta-Llama-3-8B-Instruct"},
    {"llama-3-70b", "meta-llama/Meta-Llama-3-70B meta-llama/Meta-Llama-3-70B-Instruct"},
    {"llama-3.1-8b",
     "meta-llama/Llama-3.1-8B meta-llama/Llama-3.1-8B-Instruct "
     "meta-llama/Meta-Llama-3.1-8B meta-llama/Meta-Llama-3.1-8B-Instruct "
     "deepseek-ai/DeepSeek-R1-Distill-Llama-8B"},
    {"llama-3.1-70b",
     "meta-llama/Llama-3.1-70B meta-llama/Llama-3.1-70B-Instruct "
     "meta-llama/Meta-Llama-3.1-70B meta-llama/Meta-Llama-3.1-70B-Instruct "
     "meta-llama/Llama-3.3-70B-Instruct deepseek-ai/DeepSeek-R1-Distill-Llama-70B"},
    {"llama-3.1-405b",
     "meta-llama/Llama-3.1-405B meta-llama/Llama-3.1-405B-Instruct "
     "meta-llama/Meta-Llama-3.1-405B meta-llama/Meta-Llama-3.1-405B-Instruct"},
    {"llama-3.2-1b", "meta-llama/Llama-3.2-1B meta-llama/Llama-3.2-1B-Instruct"},
    {"llama-3.2-3b", "meta-llama/Llama-3.2-3B meta-llama/Llama-3.2-3B-Instruct"},
    {"tinyllama-1.1b", "TinyLlama/TinyLlama-1.1B-Chat-v1.0 TinyLlama/TinyLlama_v1.1"},
    {"smollm2-135m", "HuggingFaceTB/SmolLM2-135M HuggingFaceTB/SmolLM2-135M-Instruct"},
    {"smollm2-360m", "HuggingFaceTB/SmolLM2-360M HuggingFaceTB/SmolLM2-360M-Instruct"},
    {"smollm2-1.7b", "HuggingFaceTB/SmolLM2-1.7B HuggingFaceTB/SmolLM2-1.7B-Instruct"},
    {"codellama-7b", "codellama/CodeLlama-7b-hf codellama/CodeLlama-7b-Instruct-hf"},
    {"yi-6b", "01-ai/Yi-6B 01-ai/Yi-6B-Chat"},
    {"deepseek-llm-7b", "deepseek-ai/deepseek-llm-7b-base deepseek-ai/deepseek-llm-7b-chat"},
    {"mistral-7b-v0.1",
     "mistralai/Mistral-7B-v0.1 mistralai/Mistral-7B-Instruct-v0.1 "
     "HuggingFaceH4/zephyr-7b-beta"},
    {"mistral-7b-v0.2", "mistralai/Mistral-7B-Instruct-v0.2"},
    {"mistral-7b-v0.3", "mistralai/Mistral-7B-v0.3 mistralai/Mistral-7B-Instruct-v0.3"},
    {"mistral-nemo-12b", "mistralai/Mistral-Nemo-Base-2407 mistralai/Mistral-Nemo-Instruct-2407"},
    {"qwen2-0.5b", "Qwen/Qwen2-0.5B Qwen/Qwen2-0.5B-Instruct"},
    {"qwen2-1.5b", "Qwen/Qwen2-1.5B Qwen/Qwen2-1.5B-Instruct"},
    {"qwen2-7b", "Qwen/Qwen2-7B Qwen/Qwen2-7B-Instruct"},
    {"qwen2.5-0.5b",
     "Qwen/Qwen2.5-0.5B Qwen/Qwen2.5-0.5B-Instruct Qwen/Qwen2.5-Coder-0.5B "
     "Qwen/Qwen2.5-Coder-0.5B-Instruct"},
    {"qwen2.5-1.5b",
     "Qwen/Qwen2.5-1.5B Qwen/Qwen2.5-1.5B-Instruct Qwen/Qwen2.5-Coder-1.5B "
     "Qwen/Qwen2.5-Coder-1.5B-Instruct"},
    {"qwen2.5-3b",
     "Qwen/Qwen2.5-3B Qwen/Qwen2.5-3B-Instruct Qwen/Qwen2.5-Coder-3B "
     "Qwen/Qwen2.5-Coder-3B-Instruct"},
    {"qwen2.5-7b",
     "Qwen/Qwen2.5-7B Qwen/Qwen2.5-7B-Instruct Qwen/Qwen2.5-Coder-7B "
     "Qwen/Qwen2.5-Coder-7B-Instruct deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"},
    {"qwen2.5-14b",
     "Qwen/Qwen2.5-14B Qwen/Qwen2.5-14B-Instruct Qwen/Qwen2.5-Coder-14B "
     "Qwen/Qwen2.5-Coder-14B-Instruct deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"},
    {"qwen2.5-32b",
     "Qwen/Qwen2.5-32B Qwen/Qwen2.5-32B-Instruct Qwen/Qwen2.5-Coder-32B "
     "Qwen/Qwen2.5-Coder-32B-Instruct deepseek-ai/DeepSeek-R1-Distill-Qwen-32B Qwen/QwQ-32B"},
    {"qwen2.5-72b", "Qwen/Qwen2.5-72B Qwen/Qwen2.5-72B-Instruct"},
    {"qwen3-0.6b", "Qwen/Qwen3-0.6B Qwen/Qwen3-0.6B-Base"},
    {"qwen3-1.7b", "Qwen/Qwen3-1.7B Qwen/Qwen3-1.7B-Base"},
    {"qwen3-4b",
     "Qwen/Qwen3-4B Qwen/Qwen3-4B-Base Qwen/Qwen3-4B-Instruct-2507 "
     "Qwen/Qwen3-4B-Thinking-2507"},
    {"qwen3-8b", "Qwen/Qwen3-8B Qwen/Qwen3-8B-Base"},
    {"qwen3-14b", "Qwen/Qwen3-14B Qwen/Qwen3-14B-Base"},
    {"qwen3-32b", "Qwen/Qwen3-32B"},
    {"gemma-2b", "google/gemma-2b google/gemma-2b-it google/gemma-1.1-2b-it"},
    {"gemma-7b", "google/gemma-7b google/gemma-7b-it google/gemma-1.1-7b-it"},
    {"gemma-2-2b", "google/gemma-2-2b google/gemma-2-2b-it"},
    {"gemma-2-9b", "google/gemma-2-9b google/gemma-2-9b-it"},
    {"gemma-2-27b", "google/gemma-2-27b google/gemma-2-27b-it"},
    {"gemma-3-270m", "google/gemma-3-270m google/gemma-3-270m-it"},
    {"gemma-3-1b", "google/gemma-3-1b-pt google/gemma-3-1b-it"},
    {"gemma-3-4b", "google/gemma-3-4b-pt google/gemma-3-4b-it", true},
    {"gemma-3-12b", "google/gemma-3-12b-pt google/gemma-3-12b-it", true},
    {"gemma-3-27b", "google/gemma-3-27b-pt google/gemma-3-27b-it", true},
    {"phi-3-mini-4k", "microsoft/Phi-3-mini-4k-instruct"},
    {"phi-3-medium-4k", "microsoft/Phi-3-medium-4k-instruct"},
    {"phi-3.5-mini", "microsoft/Phi-3.5-mini-instruct"},
    {"phi-4", "microsoft/phi-4"},
    {"phi-4-mini", "microsoft/Phi-4-mini-instruct"},
    {"mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1 mistralai/Mixtral-8x7B-Instruct-v0.1"},
    {"mixtral-8x22b", "mistralai/Mixtral-8x22B-v0.1"},
    {"mixtral-8x22b-instruct", "mistralai/Mixtral-8x22B-Instruct-v0.1"},
    {"qwen1.5-moe-a2.7b", "Qwen/Qwen1.5-MoE-A2.7B Qwen/Qwen1.5-MoE-A2.7B-Chat"},
    {"qwen2-57b-a14b", "Qwen/Qwen2-57B-A14B Qwen/Qwen2-57B-A14B-Instruct"},
    {"qwen3-30b-a3b",
     "Qwen/Qwen3-30B-A3B Qwen/Qwen3-30B-A3B-Base Qwen/Qwen3-30B-A3B-Instruct-2507 "
     "Qwen/Qwen3-30B-A3B-Thinking-2507"},
    {"qwen3-coder-30b-a3b", "Qwen/Qwen3-Coder-30B-A3B-Instruct"},
    {"qwen3-235b-a22b",
     "Qwen/Qwen3-235B-A22B Qwen/Qwen3-235B-A22B-Instruct-2507 "
     "Qwen/Qwen3-235B-A22B-Thinking-2507"},
    {"bert-base-uncased", "google-bert/bert-base-uncased"},
    {"bert-large-uncased", "google-bert/bert-large-uncased"},
    {"bert-base-cased", "google-bert/bert-base-cased"},
    {"bert-large-cased", "google-bert/bert-large-cased"},
    {"bert-base-chinese", "google-bert/bert-base-chinese"},
    {"bert-base-multilingual-cased", "google-bert/bert-base-multilingual-cased"},
    {"bert-base-multilingual-uncased", "google-bert/bert-base-multilingual-uncased"},
    {"roberta-base", "FacebookAI/roberta-base"},
    {"roberta-large", "FacebookAI/roberta-large"},
    {"distilroberta-base", "distilbert/distilroberta-base"},
    {"xlm-roberta-base", "FacebookAI/xlm-roberta-base"},
    {"xlm-roberta-large", "FacebookAI/xlm-roberta-large"},
    {"distilbert-base-uncased", "distilbert/distilbert-base-uncased"},
    {"distilbert-base-cased", "distilbert/distilbert-base-cased"},
    {"distilbert-base-multilingual-cased", "distilbert/distilbert-base-multilingual-cased"},
    {"deberta-v3-xsmall", "microsoft/deberta-v3-xsmall"},
    {"deberta-v3-small", "microsoft/deberta-v3-small"},
    {"deberta-v3-base", "microsoft/deberta-v3-base"},
    {"deberta-v3-large", "microsoft/deberta-v3-large"},
    {"mdeberta-v3-base", "microsoft/mdeberta-v3-base"},
    {"deberta-v2-xlarge", "microsoft/deberta-v2-xlarge"},
    {"deberta-v2-xxlarge", "microsoft/deberta-v2-xxlarge"},
    {"t5-small", "google-t5/t5-small"},
    {"t5-base", "google-t5/t5-base"},
    {"t5-large", "google-t5/t5-large"},
    {"t5-3b", "google-t5/t5-3b"},
    {"t5-11b", "google-t5/t5-11b"},
    {"t5-v1_1-small", "google/t5-v1_1-small"},
    {"t5-v1_1-base", "google/t5-v1_1-base"},
    {"t5-v1_1-large", "google/t5-v1_1-large"},
    {"t5-v1_1-xl", "google/t5-v1_1-xl"},
    {"t5-v1_1-xxl", "google/t5-v1_1-xxl"},
    {"flan-t5-small", "google/flan-t5-small"},
    {"flan-t5-base", "google/flan-t5-base"},
    {"flan-t5-large", "google/flan-t5-large"},
    {"flan-t5-xl", "google/flan-t5-xl"},
    {"flan-t5-xxl", "google/flan-t5-xxl"},
    {"mt5-small", "google/mt5-small"},
    {"mt5-base", "google/mt5-base"},
    {"mt5-large", "google/mt5-large"},
    {"mt5-xl", "google/mt5-xl"},
    {"mt5-xxl", "google/mt5-xxl"},
};

}  // namespace

std::vector<std::string_view> HubNames::each() const {
  std::vector<std::string_view> all;
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find(' ', begin), names.size());
    all.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

std::span<const HubNames> hub_names() { return kHubNames; }

HubPreset find_hub_preset(std::string_view name) {
  const std::string plain = lower(name);
  for (const HubNames& row : kHubNames) {
    for (const std::string_view hub_name : row.each()) {
      if (lower(hub_name) == plain) return {hub_name, row.preset, row.has_vision};
    }
  }
  return {};
}

}  // namespace dstune
