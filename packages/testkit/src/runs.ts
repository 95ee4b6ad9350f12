/** Runs of a property: few in `npm test`, many in `npm run test:all`. */
export const runsOf = ({ quick, all }: { quick: number; all: number }): number =>
  process.env.PLAYLINE_TEST_ALL === undefined ? quick : all;
