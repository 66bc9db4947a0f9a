# Answers questions about real tables; in_r.py describes the conversation.
suppressMessages({ library(robustbase); library(flexmix) })
options(show.error.messages = FALSE)  # a start that fails is left out
answer <- function(...) { cat(..., "\n"); flush(stdout()) }
known <- function(values) ifelse(is.na(values), 0, values)

# Coefficients, scale, then 1 for each row that is kept and 0 for the others.
lts <- function(x, y, ...) {
  fit <- ltsReg(x, y)
  c(known(fit$coefficients), fit$scale, as.numeric(fit$lts.wt))
}

# Log-likelihood and number of regimes; then share, noise and coefficients of each.
described <- function(fit) {
  found <- parameters(fit)
  noise <- found[rownames(found) == "sigma", ]
  theta <- known(found[rownames(found) != "sigma", , drop = FALSE])
  c(as.numeric(logLik(fit)), ncol(found), rbind(prior(fit), noise, theta))
}

select <- function(x, y, k, starts) {
  fits <- stepFlexmix(y ~ x, k = seq_len(k), nrep = starts, verbose = FALSE)
  described(if (is(fits, "flexmix")) fits else getModel(fits, "BIC"))
}

# Starts that lose a regime on the way are no answers to the question.
best <- function(x, y, k, starts) {
  kept <- NULL
  for (start in seq_len(starts)) {
    fit <- tryCatch(flexmix(y ~ x, k = k), error = function(e) NULL)
    if (is.null(fit) || ncol(parameters(fit)) < k) next
    if (is.null(kept) || as.numeric(logLik(fit)) > as.numeric(logLik(kept))) kept <- fit
  }
  described(kept)
}

answer(paste0("R ", getRversion(), ", robustbase ", packageVersion("robustbase"),
              ", flexmix ", packageVersion("flexmix")))
requests <- file("stdin", "r")
while (length(line <- readLines(requests, n = 1)) > 0) {
  request <- strsplit(line, " ")[[1]]
  question <- switch(request[1], lts = lts, select = select, best = best)
  numbers <- as.integer(request[3:7])
  values <- readBin(request[2], "double", numbers[1] * (numbers[2] + 1))
  x <- matrix(values[seq_len(numbers[1] * numbers[2])], numbers[1], numbers[2])
  y <- values[-seq_len(numbers[1] * numbers[2])]
  set.seed(numbers[5])
  found <- NULL
  time <- system.time(found <- tryCatch(
    suppressWarnings(question(x, y, numbers[3], numbers[4])), error = function(e) NULL
  ))
  answer(sum(time[c("user.self", "sys.self")]), sprintf("%.17g", found))
}
