/**
 * The checks of a session store as tests.
 *
 * @since 0.1.0
 */
import type * as Check from "./Check.ts"
import { register } from "./internal/register.ts"
import { make, type Subject } from "./SessionStoreChecks.ts"

/**
 * How the suite of a session store is run.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends Check.Options {
  /** Tests with the time of the machine, as real databases need it, instead of a `TestClock`. Default false. */
  readonly live?: boolean | undefined
}

/**
 * Adds a test for every promise of a session store.
 *
 * @since 0.1.0
 * @category testing
 */
export const run = <E>(name: string, subject: Subject<E>, options: Options = {}): void =>
  register(name, make(subject, options), options)
