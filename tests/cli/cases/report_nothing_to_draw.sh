# A figure without anything to draw: the other files are written all the same, and what is missing is said.
# status 1
perfkit run -q -o c.sqlite -- true
perfkit report c.sqlite --roofline roofline.gp --html page.html
echo $?
perfkit report c.sqlite --roofline roofline.gp --format json | grep -c '"perfkit_report"'
perfkit report c.sqlite --roofline roofline.gp --stats cuda_gpu_kern_sum --format csv
echo $?
ls
perfkit report c.sqlite --roofline roofline.gp --html /no/such/page.html
