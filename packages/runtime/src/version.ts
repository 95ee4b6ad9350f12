import manifest from '../package.json' with { type: 'json' };

/** Release of this checkout or image; `CHANGELOG.md` says what is in it. */
export const VERSION: string = manifest.version;
