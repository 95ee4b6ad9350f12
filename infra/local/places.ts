import { join, resolve } from 'node:path';

/** Folders of a stack. Two stacks of one checkout share only the provisions. */
export interface Places {
  /** The checkout's own folder. */
  readonly checkout: string;
  /** Downloads and what is made from them once: jars, class archives, a formatted Kafka folder. */
  readonly provisions: string;
  /** One stack's data, secrets, logs and records of its processes. */
  readonly state: string;
}

export const CHECKOUT = resolve(import.meta.dirname, '..', '..');

/**
 * `.playline` of the checkout for the stack that people start, or of the folder that PLAYLINE_ROOT names: for data that
 * shall lie on another disk.
 */
const stateOfPeople = () => join(process.env.PLAYLINE_ROOT || CHECKOUT, '.playline');

/** @param state the stack's folder */
export function placesOf(state = stateOfPeople()): Places {
  return { checkout: CHECKOUT, provisions: join(CHECKOUT, '.playline'), state: resolve(state) };
}

export function logFileOf(places: Places, name: string): string {
  return join(places.state, 'logs', `${name}.log`);
}
