/**
 * OpenAI models, and every server that speaks their protocols.
 *
 * @since 0.1.0
 */

/**
 * OpenAI's models by the Responses API.
 *
 * @since 0.1.0
 */
export * as OpenAi from "./OpenAi.ts"

/**
 * Every model behind Chat Completions: OpenAI's own, and those of the many servers that speak this protocol, from Ollama,
 * vLLM and LM Studio to Groq, OpenRouter, DeepSeek, Together, Mistral and Azure. `baseUrl` says which.
 *
 * @since 0.1.0
 */
export * as OpenAiChat from "./OpenAiChat.ts"
