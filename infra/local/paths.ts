import { join, resolve } from 'node:path';

/** Folders of a stack. Two stacks of one checkout share only the provisions. */
export interface StackPaths {
  /** The checkout's folder. */
  readonly checkout: string;
  /** Downloads and what is built from them once: jars, class archives, a formatted Kafka folder. */
  readonly provisions: string;
  /** One stack's data, secrets, logs and records of its processes. */
  readonly state: string;
}

export const CHECKOUT = resolve(import.meta.dirname, '..', '..');

/**
 * The folder of the stack that people start: `.playline` in the checkout, or in the folder of PLAYLINE_ROOT, for data
 * on another disk.
 */
const defaultStateFolder = () => join(process.env.PLAYLINE_ROOT || CHECKOUT, '.playline');

/** @param state the stack's folder */
export function stackPathsOf(state = defaultStateFolder()): StackPaths {
  return { checkout: CHECKOUT, provisions: join(CHECKOUT, '.playline'), state: resolve(state) };
}

export function logFileOf(places: StackPaths, name: string): string {
  return join(places.state, 'logs', `${name}.log`);
}
