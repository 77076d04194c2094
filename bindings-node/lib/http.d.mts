export { Answers, Clients } from './http.js';
export type { Answer, AnswersOptions, ClientsOptions, HeaderFamily, Naming } from './http.js';
