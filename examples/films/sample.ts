/** Three films, the same at every first start. */

const MOVIES = [
  { title: 'The Kid', year: 1921, genres: ['Comedy', 'Silent'], cast: ['Charlie Chaplin', 'Jackie Coogan'] },
  { title: 'Safety Last!', year: 1923, genres: ['Comedy', 'Silent'], cast: ['Harold Lloyd', 'Mildred Davis'] },
  { title: 'City Lights', year: 1931, genres: ['Comedy', 'Romance'], cast: ['Charlie Chaplin', 'Virginia Cherrill'] },
];

export function sampleRequests() {
  return [MOVIES.map((body) => ({ method: 'POST', path: 'movies', body }))];
}
