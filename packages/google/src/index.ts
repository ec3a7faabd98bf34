/**
 * Gemini models.
 *
 * @since 0.1.0
 */

/**
 * Gemini models, through the `streamGenerateContent` method of the Gemini API.
 *
 * @since 0.1.0
 */
export * as Google from "./Google.ts"
