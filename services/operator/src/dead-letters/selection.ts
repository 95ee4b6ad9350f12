import { type Letter, type Place, toPlaceText } from './letters.ts';

/** Which letters a command is about; what is absent does not matter. */
export interface Selection {
  readonly places?: readonly Place[];
  /** The topic that the letters came from, as it is called on the broker. */
  readonly topic?: string;
  readonly reason?: string;
  readonly step?: string;
}

/** Creates the question whether a letter is meant. A reason matches from its beginning: its end is often the input. */
export function createIsSelected(selection: Selection): (letter: Letter) => boolean {
  const places = selection.places === undefined ? null : new Set(selection.places.map(toPlaceText));
  const { topic, reason, step } = selection;
  return (letter) =>
    (places === null || places.has(toPlaceText(letter.place))) &&
    (topic === undefined || letter.original.topic === topic) &&
    (reason === undefined || letter.reason.startsWith(reason)) &&
    (step === undefined || letter.step === step);
}
