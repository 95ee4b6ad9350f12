/** Whether somebody may see ids as clients sent them; it is asked with every read that could tell one. */
export type Sight = 'raw ids' | 'masked ids';

const SHOWN_CHARACTERS = 2;

/** Enough of an id to compare two lines of a page, and too little to look its owner up. */
export function maskId(id: string): string {
  return id === '' ? '' : `${[...id].slice(0, SHOWN_CHARACTERS).join('')}…`;
}

/** An id as somebody may see it. */
export const idFor = (sight: Sight, id: string): string => (sight === 'raw ids' ? id : maskId(id));
