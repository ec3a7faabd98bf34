/**
 * The checks of a tool executor as tests.
 *
 * @since 0.1.0
 */
import type { Options } from "./Check.ts"
import { register } from "./internal/register.ts"
import { make, type Subject } from "./ToolExecutorChecks.ts"

/**
 * Adds a test for every promise of an executor.
 *
 * @since 0.1.0
 * @category testing
 */
export const run = <E>(name: string, subject: Subject<E>, options?: Options): void =>
  register(name, make(subject, options), options)
