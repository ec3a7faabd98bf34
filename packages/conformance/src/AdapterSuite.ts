/**
 * The checks of an adapter as tests.
 *
 * @since 0.1.0
 */
import * as AdapterChecks from "./AdapterChecks.ts"
import { register } from "./internal/register.ts"

/**
 * What the suite is told of an adapter: its scenarios, and by which time it is tested.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<E = never> extends AdapterChecks.Options<E> {
  /** Tests with the time of the machine, as real servers need it, instead of a `TestClock`. Default false. */
  readonly live?: boolean | undefined
}

/**
 * Adds a test for every promise of an adapter. Checks of scenarios that are not given are shown as skipped.
 *
 * @since 0.1.0
 * @category testing
 */
export const run = <E>(name: string, options: Options<E>): void => register(name, AdapterChecks.make(options), options)
