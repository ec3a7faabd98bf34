/**
 * OpenAI models, and every server that speaks their protocols.
 *
 * @since 0.1.0
 */

export {}
