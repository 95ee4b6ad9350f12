// Folders of a stack.
import { join, resolve } from 'node:path';

/** Two stacks of one checkout share only the provisions. */
export interface StackPaths {
  readonly checkout: string;
  /** Downloads and what is built from them. */
  readonly provisions: string;
  /** Data, secrets, logs and records of processes. */
  readonly state: string;
}

export const CHECKOUT = resolve(import.meta.dirname, '..', '..');

/** `.playline` in the checkout, or in the folder of PLAYLINE_ROOT. */
const defaultStateFolder = () => join(process.env.PLAYLINE_ROOT || CHECKOUT, '.playline');

/** @param state the stack's folder */
export const stackPathsOf = (state = defaultStateFolder()): StackPaths => ({
  checkout: CHECKOUT,
  provisions: join(CHECKOUT, '.playline'),
  state: resolve(state),
});

export const logFileOf = (paths: StackPaths, name: string): string => join(paths.state, 'logs', `${name}.log`);
