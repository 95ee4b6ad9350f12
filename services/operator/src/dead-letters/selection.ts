import { type Letter, type Place, toPlaceText } from './letters.ts';

/** Which letters to select; absent members match all. */
export interface Selection {
  readonly places?: readonly Place[];
  /** The original topic of the letters, its full name on the broker. */
  readonly topic?: string;
  readonly reason?: string;
  readonly step?: string;
}

/** Creates the predicate. A reason matches by its beginning, since its end is often the input. */
export function createIsSelected(selection: Selection): (letter: Letter) => boolean {
  const places = selection.places === undefined ? null : new Set(selection.places.map(toPlaceText));
  const { topic, reason, step } = selection;
  return (letter) =>
    (places === null || places.has(toPlaceText(letter.place))) &&
    (topic === undefined || letter.original.topic === topic) &&
    (reason === undefined || letter.reason.startsWith(reason)) &&
    (step === undefined || letter.step === step);
}
