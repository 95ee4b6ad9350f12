// The folders of a stack.
import { join, resolve } from 'node:path';

/** Folders of a stack. Stacks of the same checkout share only the downloads. */
export interface StackPaths {
  readonly checkout: string;
  /** Downloads and files built from them. */
  readonly downloads: string;
  /** Data, secrets, logs and process records. */
  readonly state: string;
}

export const CHECKOUT = resolve(import.meta.dirname, '..', '..');

/** Returns `.playline` in PLAYLINE_ROOT, or in the checkout. */
const defaultStateFolder = () => join(process.env.PLAYLINE_ROOT || CHECKOUT, '.playline');

/** @param state the stack's folder */
export const stackPathsOf = (state = defaultStateFolder()): StackPaths => ({
  checkout: CHECKOUT,
  downloads: join(CHECKOUT, '.playline'),
  state: resolve(state),
});

export const logFileOf = (paths: StackPaths, name: string): string => join(paths.state, 'logs', `${name}.log`);
